// Package check compares index configs and conditions with what CustomResourceDefinitions say of objects.
package check
