// Package health keeps what is known of informers: from what their requests and their lives report, it derives states and
// the conditions of a factory, and tells waiters and listeners.
package health
