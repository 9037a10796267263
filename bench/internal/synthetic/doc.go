// Package synthetic is an API server of one type with any number of objects, which are copies of a recorded
// watch-list. It answers only watch-lists and watches. Its answers are prepared, so that it takes little CPU
// time from the clients. It changes objects at a given rate.
package synthetic
