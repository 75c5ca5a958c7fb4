"""Floor 2. What is promised, checked and spent: pure, no network, no store.

    planner       which mechanism for a question (question), how many reports, which epsilon
    draws         totals as they would come, at random; repeats: of the same devices over epochs
    card          what a catalog promises a person, in figures and in sentences
    amplification what the crowd of a shuffled batch adds; crowd: of one mechanism's reports
    composition   what many reports, or many releases, say together
    proofs/       every: each promise of a mechanism by exact enumeration (replay); coins: of the
                  coin source; attack: a lower bound by trying; audit: all of them, for a catalog
    releases      noise on totals for numbers that leave the house

The proofs need nothing but the standard library, so nothing is imported here.
"""
