"""The parts of `hubbub demo`: questions, answers, and earlier days."""
