"""Floor 2. From totals to answers, pure: no network, no store. numpy allowed."""
