"""Speed, always as a ratio to a peer or a naive version measured in the same run."""
