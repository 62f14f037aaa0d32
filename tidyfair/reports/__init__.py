"""Pictures, tables and pages: results come in, and what people look at goes out."""
