// Package config decodes index configs. form.go declares the fields and what they take. fields.go reads a
// file into these forms and reports errors with their places. The compile functions make resources, indexes
// and references of the forms. Package indexers evaluates them.
package config
