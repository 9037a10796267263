package snapshot

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ageDescription is how API servers describe a column that shows how long ago an object was created.
var ageDescription = metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]

// since is a cell that shows how long ago a moment was. The text of the server would be true for a moment
// only.
type since struct {
	Since *time.Time `json:"since"`
}

// Cells makes the row of a server's table, whose cells are those of an object in JSON, fit for keeping: an
// age becomes the moment that it counts from. Without cells there is no row.
func Cells(columns []metav1.TableColumnDefinition, cells []json.RawMessage,
	created time.Time) ([]byte, error) {
	if len(cells) == 0 {
		return nil, nil
	}
	row := make([]any, len(cells))
	for i, cell := range cells {
		row[i] = cell
		if i < len(columns) && columns[i].Description == ageDescription && !created.IsZero() &&
			showsAge(cell) {
			row[i] = since{&created}
		}
	}
	return json.Marshal(row)
}

// showsAge reports whether a cell is a text that is no time by itself.
func showsAge(cell json.RawMessage) bool {
	var text string
	if json.Unmarshal(cell, &text) != nil {
		return false
	}
	_, err := time.Parse(time.RFC3339, text)
	return err != nil
}

// CellSince returns the moment that a decoded cell counts from, if it shows an age.
func CellSince(cell any) (time.Time, bool) {
	object, ok := cell.(map[string]any)
	if !ok {
		return time.Time{}, false
	}
	text, _ := object["since"].(string)
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil
}
