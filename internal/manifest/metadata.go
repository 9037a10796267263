package manifest

import (
	"time"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// scanMetadataField scans the field of metadata with a name. Like all scanners here, it returns the end of
// the valid value at i, or a negative number if decoding has to find out whether clients can read the value.
func scanMetadataField(name, data []byte, i int) int {
	switch string(name) {
	case "generateName", "name", "namespace", "resourceVersion", "selfLink", "uid":
		return scanString(data, i)
	case "creationTimestamp", "deletionTimestamp":
		return scanTime(data, i)
	case "deletionGracePeriodSeconds", "generation":
		return scanShortNumber(data, i)
	case "annotations", "labels":
		return scanFields(data, i, func(_, data []byte, i int) int { return scanString(data, i) })
	case "ownerReferences":
		return scanElements(data, i,
			func(data []byte, i int) int { return scanFields(data, i, scanOwnerField) })
	case "finalizers":
		return scanElements(data, i, scanString)
	case "managedFields":
		return scanElements(data, i,
			func(data []byte, i int) int { return scanFields(data, i, scanManagedField) })
	}
	return -1
}

func scanOwnerField(name, data []byte, i int) int {
	switch string(name) {
	case "apiVersion", "kind", "name", "uid":
		return scanString(data, i)
	case "blockOwnerDeletion", "controller":
		return max(jsontext.ScanLiteral(data, i, "true"), jsontext.ScanLiteral(data, i, "false"))
	}
	return -1
}

func scanManagedField(name, data []byte, i int) int {
	switch string(name) {
	case "apiVersion", "fieldsType", "manager", "operation", "subresource":
		return scanString(data, i)
	case "fieldsV1":
		if data[i] == '{' {
			return scanValue(data, i)
		}
	case "time":
		return scanTime(data, i)
	}
	return -1
}

// scanFields scans an object with a scanner for its fields. Names may have no escape sequences.
func scanFields(data []byte, i int, scan func(name, data []byte, i int) int) int {
	if data[i] != '{' {
		return -1
	}
	i, closed := jsontext.EnterContainer(data, i)
	for !closed {
		end, value, encoded := jsontext.ScanKey(data, i)
		if encoded {
			return -1
		}
		if end = scan(data[i+1:end-1], data, value); end < 0 {
			return end
		}
		i, closed = jsontext.NextMember(data, end, '}')
	}
	return i
}

func scanElements(data []byte, i int, scan func(data []byte, i int) int) int {
	if data[i] != '[' {
		return -1
	}
	i, closed := jsontext.EnterContainer(data, i)
	for !closed {
		end := scan(data, i)
		if end < 0 {
			return end
		}
		i, closed = jsontext.NextMember(data, end, ']')
	}
	return i
}

func scanValue(data []byte, i int) int {
	end, ok, _ := jsontext.SkipValue(data, i)
	if !ok {
		return -1
	}
	return end
}

func scanString(data []byte, i int) int {
	if data[i] != '"' {
		return -1
	}
	end, _ := jsontext.ScanAnyString(data, i+1)
	return end
}

// scanTime scans a time or null.
func scanTime(data []byte, i int) int {
	end := scanString(data, i)
	if end < 0 {
		return jsontext.ScanLiteral(data, i, "null")
	}
	if _, err := time.Parse(time.RFC3339, string(data[i+1:end-1])); err != nil {
		return -1
	}
	return end
}

// scanShortNumber scans an integer that needs no check of its range.
func scanShortNumber(data []byte, i int) int {
	const maxDigits = 18
	end, form := jsontext.ScanNumber(data, i)
	if form != jsontext.Integer || end > i+maxDigits {
		return -1
	}
	return end
}
