"""Public names of this package, a line each; they are loaded when they are first used."""

from gibbsite.inference.questions.asked import EventAnswer as EventAnswer
from gibbsite.inference.questions.asked import ask as ask
from gibbsite.inference.questions.comparison import EvidenceComparison as EvidenceComparison
from gibbsite.inference.questions.comparison import compare_evidence as compare_evidence
from gibbsite.inference.questions.evidence import Conflict as Conflict
from gibbsite.inference.questions.evidence import Support as Support
from gibbsite.inference.questions.evidence import measure_conflict as measure_conflict
from gibbsite.inference.questions.evidence import weigh_evidence as weigh_evidence
from gibbsite.inference.questions.expectation import Expectation as Expectation
from gibbsite.inference.questions.expectation import compute_expectation as compute_expectation
from gibbsite.inference.questions.interventions import Effect as Effect
from gibbsite.inference.questions.interventions import estimate_effect as estimate_effect
from gibbsite.inference.questions.interventions import intervene as intervene
from gibbsite.inference.questions.observations import Candidate as Candidate
from gibbsite.inference.questions.observations import NextObservations as NextObservations
from gibbsite.inference.questions.observations import ObservationPlan as ObservationPlan
from gibbsite.inference.questions.observations import plan_observations as plan_observations
from gibbsite.inference.questions.observations import rank_observations as rank_observations
from gibbsite.inference.questions.sensitivity import Entry as Entry
from gibbsite.inference.questions.sensitivity import Sensitivity as Sensitivity
from gibbsite.inference.questions.sensitivity import analyse_sensitivity as analyse_sensitivity
