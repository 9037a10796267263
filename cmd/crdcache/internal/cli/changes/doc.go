// Package changes tells a person what differs between two states of an object.
package changes
