// Package suggest is the verb suggest: propose indexes for a type, from what its CRD says is worth looking at.
package suggest
