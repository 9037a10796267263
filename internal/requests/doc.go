// Package requests lists and watches one type, or one namespace of it, for a reflector: it classifies what goes wrong,
// paces requests by that, bounds how many lists are under way at once, and reports the outcome of each request.
package requests
