"""Floor 2. What is promised, checked and spent: pure, no network, no store.

    planner       which mechanism for a question, how many reports, which epsilon, by the errors
                  expected; draws: totals as they would come
    card          what a catalog promises a person, in figures and in sentences
    amplification what the crowd of a shuffled batch adds; composition: what many reports add up to
    proofs        each promise of a mechanism by exact enumeration (replay); attack: by trying
    audit         both, for what is installed and for a catalog
    releases      noise on totals for numbers that leave the house

The proofs need nothing but the standard library, so nothing is imported here.
"""
