// Package check checks index configs and query conditions against the schemas of CustomResourceDefinitions.
package check
