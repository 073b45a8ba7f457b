"""The experiment on columns of noise: its claims from made-up results."""

from experiments import noise


def test_unconverged_fits_are_excluded_and_counted():
    def result(method, projections, arrived):
        return noise.Result("Wine", 64, 0, method, 5.0, 3, "", 1.0, projections, arrived)

    by = {
        ("Wine", 64, noise.BUNDLE): [result(noise.BUNDLE, 5, None)] * 4,
        ("Wine", 64, noise.ADMM): [result(noise.ADMM, n, n < 100) for n in (10, 20, 100, 100)],
        ("Wine", 64, noise.SUBGRADIENT): [result(noise.SUBGRADIENT, n, n < 500) for n in (80, 500, 60, 500)],
    }
    *_, claim = noise.claims(by, noise.SHORT)
    assert claim.value == 8.0  # of the only split where both arrive
    assert "of the 1 runs" in claim.claim
    assert "2 of ADMM do not, 2 of sub-gradients" in claim.claim
