"""The parts of `hubbub demo`: questions, one device's report, answers, and earlier days."""
