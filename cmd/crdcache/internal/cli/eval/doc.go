// Package eval is the verb eval: show what a path or a condition gives on objects from files, and why it gives nothing.
package eval
