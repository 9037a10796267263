// Package resources is the verb resources: list what discovery and the CRD tracker know about types.
package resources
