"""A compiler pipeline that makes no machine code for helpers, which are merged into their callers.

Numba makes machine code of every function it compiles, although a helper never runs by itself: it is linked as LLVM
code into an entry point, of which machine code is made as a whole. Omitting the machine code of helpers saves a fifth
of the time of a first call. Helpers are also optimised once instead of twice, because the second, full optimisation is
applied to the whole; this saves another tenth. Passes that have no effect on helpers and loops are omitted, too. These
parts of Numba are private; versions that have not been tested use Numba's own pipeline.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from gibbsite._numba.parts import try_part

_TRIED = {(0, 68)}


def lean_options() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return options of ``numba.jit`` for helpers, and for loops that allocate nothing."""
    helper: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    loop: dict[str, Any] = {}
    made: list[tuple[type, type]] = []
    if try_part("helpers", lambda: made.append(_make_pipelines())):
        helper["pipeline_class"], loop["pipeline_class"] = made[0]
    return helper, loop


def _is_plain(function: Any) -> bool:
    """Tell whether a function belongs to the package and defines no inner functions."""
    ours = function.__module__.partition(".")[0] == "gibbsite"
    return ours and not any(isinstance(each, CodeType) for each in function.__code__.co_consts)


def _make_pipelines() -> tuple[type, type]:
    import numba

    if numba.version_info.short not in _TRIED:
        raise NotImplementedError(f"it has not been tried with Numba {numba.__version__}")
    from numba.core import codegen, compiler, typed_passes, untyped_passes
    from numba.core.compiler_machinery import register_pass

    from numba import _dynfunc  # type: ignore[attr-defined]

    # Our functions do not use these: ``with`` blocks, inner functions, expressions of whole arrays, and functions that
    # are inlined before types are inferred.
    needless = (
        untyped_passes.WithLifting,
        untyped_passes.InlineClosureLikes,
        untyped_passes.MakeFunctionToJitFunction,
        untyped_passes.InlineInlinables,
        typed_passes.NopythonRewrites,
    )
    library: Any = codegen.JITCodeLibrary
    lowering: Any = typed_passes.NativeLowering
    builder: Any = compiler.DefaultPassBuilder
    base: Any = compiler.CompilerBase
    given_flags: Any = compiler.Flags
    register: Any = register_pass

    class HelperLibrary(library):  # type: ignore[misc]
        """LLVM code that is optimised and linked into other libraries, but not compiled further."""

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        def _optimize_functions(self, module: Any) -> None:
            # as in Numba, but skipping functions that are only declared
            module.data_layout = self._codegen._data_layout
            for function in module.functions:
                if not function.is_declaration:
                    passes, builder = self._codegen._function_pass_manager()
                    passes.run(function, builder)

        def _optimize_final_module(self) -> None:
            # the optimisation that Numba runs before it removes reference counting; the full one follows in the entry
            # point. Without the first one, loops are up to 50 % slower.
            generator = self._codegen
            passes, builder = generator._module_pass_manager(
                loop_vectorize=generator._loopvect, slp_vectorize=False, opt=generator._opt_level, cost="cheap"
            )
            passes.run(self._final_module, builder)

        def get_pointer_to_function(self, name: str) -> int:
            return 0

    @register(mutates_CFG=True, analysis_only=False)
    class HelperLowering(lowering):  # type: ignore[misc]
        """ModelCompiler that stops at LLVM code."""

        _name = "gibbsite_helper_lowering"

        def run_pass(self, state: Any) -> bool:
            if state.library is None:
                state.library = HelperLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            given, state.flags.no_compile = state.flags.no_compile, True
            try:
                super().run_pass(state)
            finally:
                state.flags.no_compile = given
            found = state.cr
            # callers identify the function by this object, which is never called
            name = found.fndesc.qualname.split(".")[-1]
            key = _dynfunc.make_function(found.fndesc.lookup_module(), name, "", 0, found.env, (state.library,))
            state.targetctx.insert_user_function(key, found.fndesc, [state.library])
            state.reload_init.extend(state.library._reload_init)
            state.cr = found._replace(cfunc=key)
            return True

    class Flags(given_flags):  # type: ignore[misc]
        """Numba's flags with a cached hash, because Numba looks functions up by them thousands of times."""

        def __hash__(self) -> int:
            return number

        def __eq__(self, other: object) -> bool:
            if not isinstance(other, given_flags):
                return NotImplemented
            return self._values == other._values or _differing(self) == _differing(other)

    def _differing(flags: Any) -> dict[str, Any]:
        """Return the options of flags that differ from their defaults."""
        return {name: value for name, value in flags._values.items() if value != defaults[name]}

    defaults = {name: option.default for name, option in given_flags.options.items()}
    number = hash(given_flags())  # depends on the names of the options only
    if hash(given_flags(Flags())) != number:
        raise ValueError("flags have hashes of their own")

    class LeanCompiler(base):  # type: ignore[misc]
        """Numba's pipeline without passes that our functions do not need."""

        def __init__(
            self, typing: Any, target: Any, library: Any, arguments: Any, returned: Any, flags: Any, local_types: Any
        ) -> None:
            super().__init__(typing, target, library, arguments, returned, Flags(flags), local_types)

        def define_pipelines(self) -> list[Any]:
            manager = builder.define_nopython_pipeline(self.state)
            if _is_plain(self.state.func_id.func):
                manager.passes = [(each, said) for each, said in manager.passes if each not in needless]
            manager.finalize()
            return [manager]

    class HelperCompiler(LeanCompiler):
        """The lean pipeline with the lowering of helpers."""

        def define_pipelines(self) -> list[Any]:
            (manager,) = super().define_pipelines()
            for place, (each, said) in enumerate(manager.passes):
                if each is lowering:
                    manager.passes[place] = HelperLowering, said
            manager.finalize()
            return [manager]

    return HelperCompiler, LeanCompiler
