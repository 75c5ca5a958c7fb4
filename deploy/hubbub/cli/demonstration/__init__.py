"""What `hubbub demo` shows: what is asked, what left one device, the answers, and days before."""
