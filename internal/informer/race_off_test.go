//go:build !race

package informer

const underRace = false
