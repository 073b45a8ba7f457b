"""Songs as one Gaussian of their frames each, and the space of such Gaussians' logarithms."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
