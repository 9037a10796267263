package snapshot

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ageDescription is the description of age columns in tables of API servers.
var ageDescription = metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]

// relativeTime is a cell with an age, stored as the time from which it counts.
type relativeTime struct {
	Since *time.Time `json:"since"`
}

// Cells converts the cells of a server's table row for storage: it replaces an age by the time from which
// it counts. It returns nil if there are no cells.
func Cells(columns []metav1.TableColumnDefinition, cells []json.RawMessage,
	created time.Time) ([]byte, error) {
	if len(cells) == 0 {
		return nil, nil
	}
	row := make([]any, len(cells))
	for i, cell := range cells {
		row[i] = cell
		if i < len(columns) && columns[i].Description == ageDescription && !created.IsZero() &&
			isAgeCell(cell) {
			row[i] = relativeTime{&created}
		}
	}
	return json.Marshal(row)
}

// isAgeCell reports whether a cell is a string that is not a time.
func isAgeCell(cell json.RawMessage) bool {
	var text string
	if json.Unmarshal(cell, &text) != nil {
		return false
	}
	_, err := time.Parse(time.RFC3339, text)
	return err != nil
}

// CellSince returns the time from which the age in a decoded cell counts. It returns false for other cells.
func CellSince(cell any) (time.Time, bool) {
	object, ok := cell.(map[string]any)
	if !ok {
		return time.Time{}, false
	}
	text, _ := object["since"].(string)
	since, err := time.Parse(time.RFC3339, text)
	return since, err == nil
}
