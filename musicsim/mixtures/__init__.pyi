from .divergence import cross_entropy as cross_entropy
from .divergence import kl_divergences as kl_divergences
from .songs import SongMixtures as SongMixtures
from .songs import fit_mixtures as fit_mixtures
from .space import MixtureSpace as MixtureSpace
from .tags import SemanticMultinomials as SemanticMultinomials
