// Package typesource defines how a factory learns which resource types an API server serves. The
// Tracker of package discovery implements Source; the interface is separate, so that programs which
// import informers need not import discovery.
package typesource
