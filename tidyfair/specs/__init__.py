"""Everything a user can say before there is data: arguments come in, and frozen values go out."""
