import pickle

import numpy as np
import pytest

from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.steps import HigherOrderChain
from undertow.errors import ModelError

SEVENTY = [[0.445, 0.555], [0.149, 0.850]]  # as printed; the second row sums to .999
CHAIN = [[0.818, 0.182], [0.371, 0.629]]


def test_a_row_off_by_a_thousandth_is_refused_by_name_with_the_way_out():
    with pytest.raises(ModelError, match=r"got 0\.999 in row 1; renormalise it"):
        MarkovChain(SEVENTY)


def test_renormalising_is_recorded_among_the_assumptions():
    chain = MarkovChain(SEVENTY, renormalise=True)
    assert chain.transition[1].tolist() == pytest.approx([0.149 / 0.999, 0.85 / 0.999])
    assert any("row 1 summed to 0.999" in text for text in chain.assumptions().checked)
    assert len(MarkovChain(CHAIN).assumptions().checked) == 1


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[1.0]], "at least 2 states, got 1"),
        ([[0.5, 0.5]], "square matrix"),
        ([[0.5, 0.5], [1.2, -0.2]], r"non-negative entries, got -0.2 at \(1, 1\)"),
        ([[0.5, 0.5], [np.nan, 1.0]], "got nan"),
        ([[0.5, 0.5], [1.0]], "rows of one length"),
        ([["a", 0.5], [1.0, 0.0]], "must be numbers"),
        ([], "square matrix"),
        (np.zeros((0, 2, 2)), "at least 2 states"),
    ],
)
def test_malformed_matrices_are_refused_in_one_sentence(matrix, words):
    with pytest.raises(ModelError, match=words):
        MarkovChain(matrix)


def test_a_row_of_zeros_cannot_be_renormalised():
    with pytest.raises(ModelError, match="positive sum"):
        MarkovChain([[1, 1], [0, 0]], renormalise=True)


@pytest.mark.parametrize(
    ("law", "words"),
    [
        ([1.0], "one probability for each of the 2 states"),
        ([0.5, 0.4], "sum to 1 within 1e-09, got 0.9"),
        ([1.5, -0.5], "non-negative"),
        ([np.nan, 1.0], "non-negative"),
    ],
)
def test_malformed_starts_are_refused(law, words):
    with pytest.raises(ModelError, match=words):
        MarkovChain(CHAIN, law)


@pytest.mark.parametrize(
    ("values", "words"),
    [([1.0], "one finite number"), ([1, np.inf], "finite"), ([2, 2], "all be equal")],
)
def test_malformed_values_are_refused(values, words):
    with pytest.raises(ModelError, match=words):
        MarkovChain(CHAIN, values=values)


def test_zeros_are_allowed_and_make_the_ratios_infinite():
    chain = MarkovChain([[0.5, 0.5], [1.0, 0.0]])
    assert not chain.is_positive
    assert chain.gamma == chain.omega == chain.diameter == np.inf
    assert chain.stationary().tolist() == pytest.approx([2 / 3, 1 / 3])


def test_a_homogeneous_chain_describes_itself():
    chain = MarkovChain(CHAIN, length=3, values=[60, 80])
    assert (chain.states, chain.length, chain.size, chain.largest_group) == (2, 3, 3, 3)
    assert chain.is_homogeneous
    assert chain.is_positive
    assert chain.value_range == (60.0, 80.0)
    assert chain.values.tolist() == [60.0, 80.0]
    assert MarkovChain(CHAIN, [2, 6], renormalise=True).initial.tolist() == [0.25, 0.75]
    assert chain.steps().shape == (2, 2, 2)
    assert chain.step(1).tolist() == CHAIN
    assert chain.initial is None
    assert repr(chain) == "<Markov chain of 3 records on 2 states>"
    assert MarkovChain(CHAIN).summary == (
        "Markov chain of any number of records on 2 states"
    )
    assert chain.with_length(9).size == 9


def test_a_step_outside_the_chain_is_refused():
    with pytest.raises(ValueError, match="0 to 1, got 2"):
        MarkovChain(CHAIN, length=3).step(2)
    assert MarkovChain(CHAIN).step(99).tolist() == CHAIN


def test_one_matrix_for_each_step_fixes_the_length():
    other = [[0.5, 0.5], [0.25, 0.75]]
    chain = MarkovChain([CHAIN, other], [0.5, 0.5])
    assert chain.length == 3
    assert not chain.is_homogeneous
    assert chain.steps().shape == (2, 2, 2)
    assert chain.step(1).tolist() == other
    assert chain.gamma == pytest.approx(0.818 / 0.182)
    assert chain.omega == pytest.approx(0.629 / 0.182)
    with pytest.raises(ModelError, match="got a chain with one for each step"):
        _ = chain.transition
    with pytest.raises(ModelError, match="length must be 3, one more than the 2"):
        MarkovChain([CHAIN, other], length=5)


def test_marginals_follow_the_kernels_from_the_given_start():
    chain = MarkovChain(CHAIN, [1.0, 0.0], 4)
    expected = [np.linalg.matrix_power(CHAIN, t)[0] for t in range(4)]
    assert np.allclose(chain.marginals(), expected, atol=1e-15)


def test_without_a_start_the_chain_is_stationary():
    chain = MarkovChain(CHAIN, length=4)
    law = chain.initial_law()
    assert np.allclose(law @ np.array(CHAIN), law, atol=1e-15)
    assert np.allclose(chain.marginals(), law)


def test_a_time_varying_chain_without_a_start_has_no_law():
    with pytest.raises(ModelError, match="initial must be given"):
        MarkovChain([CHAIN, CHAIN]).initial_law()


def test_a_chain_with_two_closed_classes_has_no_stationary_law():
    chain = MarkovChain(np.eye(2), length=3)
    with pytest.raises(ModelError, match="2 classes of states that are never left"):
        chain.sample(1, rng=np.random.default_rng(0))
    start = MarkovChain(np.eye(2), [0.3, 0.7], 3)
    drawn = start.sample(5, rng=np.random.default_rng(0))
    assert (drawn == drawn[:, :1]).all()


def test_what_needs_a_length_says_so():
    chain = MarkovChain(CHAIN)
    for call in (
        chain.steps,
        chain.marginals,
        lambda: chain.sample(1, rng=np.random.default_rng(0)),
        lambda: chain.sample_given({}, 1, rng=np.random.default_rng(0)),
    ):
        with pytest.raises(ModelError, match="give the model a length"):
            call()


def test_impossible_evidence_is_refused():
    chain = MarkovChain([[0.5, 0.5], [1.0, 0.0]], length=3)
    with pytest.raises(ModelError, match="occur together"):
        chain.sample_given({0: 1, 1: 1}, 2, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="state of record 1 must be in"):
        chain.sample_given({1: 2}, 2, rng=np.random.default_rng(0))


def test_samples_never_take_a_transition_of_probability_zero():
    chain = MarkovChain([[0.5, 0.5], [1.0, 0.0]], length=200)
    for drawn in (
        chain.sample(50, rng=np.random.default_rng(1)),
        chain.sample_given({100: 1}, 50, rng=np.random.default_rng(2)),
    ):
        assert drawn.shape == (50, 200)
        assert not ((drawn[:, :-1] == 1) & (drawn[:, 1:] == 1)).any()
    assert (drawn[:, 100] == 1).all()


def test_conditioning_on_a_long_chain_does_not_underflow():
    tiny = 1e-200
    chain = MarkovChain([[1 - tiny, tiny], [tiny, 1 - tiny]], [0.5, 0.5], 2000)
    drawn = chain.sample_given({1999: 1}, 3, rng=np.random.default_rng(0))
    assert (drawn == 1).all()


def test_arrays_of_a_chain_cannot_be_written_to_and_it_pickles():
    chain = pickle.loads(pickle.dumps(MarkovChain(CHAIN, [0.2, 0.8], 3)))
    assert chain.marginals().shape == (3, 2)
    with pytest.raises(ValueError, match="read-only"):
        MarkovChain(CHAIN).transition[0, 0] = 1.0


def test_methods_come_strongest_first_and_end_with_the_general_bound():
    names = [method.name for method in MarkovChain(CHAIN).methods()]
    assert names[4:] == [
        "projective",
        "steps",
        "window",
        "ratio",
        "omega",
        "gamma",
        "zhao",
        "general",
    ]


def test_another_length_keeps_the_note_on_renormalised_rows():
    chain = MarkovChain([[0.882, 0.117], [0.305, 0.695]], renormalise=True)
    assert chain.with_length(9).assumptions() == chain.assumptions()
    assert any("renormalised" in note for note in chain.assumptions().checked)
    memory = HigherOrderChain(np.ones((2, 2, 2)), order=2, renormalise=True)
    assert any("renormalised" in note for note in memory.assumptions().checked)
