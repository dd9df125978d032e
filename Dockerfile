# gibbsite with everything compiled: docker build -t gibbsite . && docker run --rm gibbsite infer alarm --observe HRBP=HIGH
FROM python:3.12-slim
WORKDIR /gibbsite
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir ".[all]"
RUN useradd --create-home --uid 1000 gibbsite
USER gibbsite
WORKDIR /home/gibbsite
# Code is compiled for the processor of the machine that builds the image; another one compiles again when it first runs.
RUN gibbsite warmup --quiet
ENTRYPOINT ["gibbsite"]
