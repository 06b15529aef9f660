//! Tests of bulk copies.
