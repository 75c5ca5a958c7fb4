"""Floor 1. Tokens against fake reports: an issuer gives them, blinded; a shuffler requires them."""
