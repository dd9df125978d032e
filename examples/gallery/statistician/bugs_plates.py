"""
The graph of a BUGS model
=========================

``gs.plot_model`` draws the text of a model: a plate stands around what a loop repeats, grey circles are observed,
dashed ones are computed, and boxes are data without a distribution. Growth curves of rats need two plates.
"""

import numpy as np

import gibbsite as gs

text = """
model {
   for (i in 1:N) {
      for (j in 1:T) {
         weight[i,j] ~ dnorm(mu[i,j], tau)
         mu[i,j] <- alpha[i] + beta[i] * (age[j] - 22)
      }
      alpha[i] ~ dnorm(alpha.c, tau.alpha)
      beta[i] ~ dnorm(beta.c, tau.beta)
   }
   alpha.c ~ dnorm(0, 1.0E-4)
   beta.c ~ dnorm(0, 1.0E-4)
   tau ~ dgamma(0.001, 0.001)
   tau.alpha ~ dgamma(0.001, 0.001)
   tau.beta ~ dgamma(0.001, 0.001)
   sigma <- 1 / sqrt(tau)
}
"""
age = np.array([8, 15, 22, 29, 36])
weight = 240 + np.random.default_rng(1).normal(0, 15, (30, 1)) + 6.2 * (age - 22)
model = gs.bugs(text, {"N": 30, "T": 5, "age": age, "weight": weight})
axes = gs.plot_model(model)
