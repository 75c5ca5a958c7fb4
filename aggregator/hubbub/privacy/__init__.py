"""Privacy promises: computed, checked and spent. Pure: no network, no store.

    planner       mechanism, epsilon and number of reports for a question (metric_draft)
    card          what a catalog promises a person; leaflet_and_claims and legal_papers: for others
    amplification privacy gained in any shuffled batch; crowd_guarantees: for one metric's reports
    shuffled_*    exact account of a whole epoch, with two_values_account and few_lies_account
    noise_dummies_account    the same if each value has dummies, with two_values_account,
                  lies_and_dummies_account, third_values_account and third_means_account
    composition   several reports or releases together; many_epochs: several whole epochs
    fewest_dummies  how many to add to a crowd; count_privacy: what report counts reveal
    proofs/       enumeration: each mechanism's promises, exactly (replay); coins: the bit source;
                  attack: lower bounds by experiment; audit: all of them, for a catalog
    central_releases  noise on totals for published numbers

The proofs need only the standard library, so nothing is imported here.
"""
