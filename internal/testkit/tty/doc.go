// Package tty provides terminals for tests of interactive output. It only works on Unix systems.
package tty
