// Package status holds the values with which informers and factories describe themselves: states with
// their reasons, conditions, and figures for monitoring. They are copies; reading them needs no lock.
package status
