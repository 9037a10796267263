// Package synthetic is an API server of one type that has as many objects as one likes: those of a recorded
// watch-list, multiplied. It answers watch-lists and watches alone, from answers made before, so that it
// takes little of the processor time that its clients need, and it changes objects at the rate that it is
// told to.
package synthetic
