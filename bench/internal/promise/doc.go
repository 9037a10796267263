// Package promise holds what the project promises about speed and memory, in one table, and judges a result by
// it. Everything is a ratio of two figures of one run, because a figure alone says more about the machine.
package promise
