// Package tty makes terminals for tests of what a person sees. It works on Unix systems alone.
package tty
