"""What does a release file say? Its parts, read strictly, each error one sentence."""
