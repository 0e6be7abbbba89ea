"""moses.ini: read, and changed so that every other byte stays."""
