// Package config decodes index configs. form.go declares the fields and their constraints. fields.go decodes
// a file into these forms and reports errors with their positions. The compile functions convert the forms to
// resources, indexes and references, which package indexers evaluates. The check functions compare these with
// the schemas of CustomResourceDefinitions.
package config
