// Package runner makes the experiments of a plan, one child process after the other, against sandboxes that it
// starts and removes.
package runner
