"""Privacy promises: computed, checked and spent. Pure: no network, no store.

    planner       mechanism, epsilon and number of reports for a question (metric_draft)
    card          what a catalog promises a person; leaflet, papers, review: for other readers
    amplification privacy gained in any shuffled batch; crowd: for one metric's reports
    shuffled_*    exact account of a whole epoch, with one_count and few_lies; noisy_counts, if each
                  value has dummies, with noisy_lies and third_values
    composition   several reports or releases together; many_epochs: several whole epochs
    padding       how many dummies to add to a crowd; hidden_counts: what report counts reveal
    proofs/       enumeration: each mechanism's promises, exactly (replay); coins: the bit source;
                  attack: lower bounds by experiment; audit: all of them, for a catalog
    releases      noise on totals for published numbers

The proofs need only the standard library, so nothing is imported here.
"""
