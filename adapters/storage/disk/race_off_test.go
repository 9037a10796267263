//go:build !race

package disk

const underRace = false
