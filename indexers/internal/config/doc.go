// Package config decodes index configs: which fields there are, what they take, and what to say about those that are
// wrong, with the place in the file. Package indexers evaluates what it declares.
package config
