"""Public names of this package, a line each; they are loaded when they are first used."""

from gibbsite.applications import bugs as bugs
from gibbsite.applications import entities as entities
from gibbsite.applications import segmentation as segmentation
from gibbsite.applications.cases.answers import CaseAnswers as CaseAnswers
from gibbsite.applications.cases.answers import solve_cases as solve_cases
from gibbsite.applications.cases.score import CaseScore as CaseScore
from gibbsite.applications.cases.score import score_cases as score_cases
from gibbsite.applications.collapsed.mixture import Clustering as Clustering
from gibbsite.applications.collapsed.mixture import cluster_points as cluster_points
from gibbsite.applications.collapsed.selection import Selection as Selection
from gibbsite.applications.collapsed.selection import select_variables as select_variables
from gibbsite.applications.denoising import Denoised as Denoised
from gibbsite.applications.denoising import denoise as denoise
from gibbsite.applications.dimod_sampler import DimodSampler as DimodSampler
from gibbsite.applications.dimod_sampler import to_sampleset as to_sampleset
from gibbsite.applications.entities.recognizer import EntityRecognizer as EntityRecognizer
from gibbsite.applications.images import read_image as read_image
from gibbsite.applications.images import write_image as write_image
from gibbsite.applications.logistic import LogisticRegression as LogisticRegression
from gibbsite.applications.logistic import logistic_regression as logistic_regression
from gibbsite.applications.noise import estimate_flip as estimate_flip
from gibbsite.applications.noise import estimate_sigma as estimate_sigma
from gibbsite.applications.noise import estimate_two_levels as estimate_two_levels
from gibbsite.applications.segmentation.scribbles import Segmented as Segmented
from gibbsite.applications.segmentation.scribbles import segment_scribbles as segment_scribbles
