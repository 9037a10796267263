// Package validate is the verb validate: check index configs, alone or against the types that they name.
package validate
