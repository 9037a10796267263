package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// groupRecord is a group as json has it. What there is no value of is null.
type groupRecord struct {
	Values   map[string]*string         `json:"values"`
	Count    int                        `json:"count"`
	Computed map[string]json.RawMessage `json:"computed,omitempty"`
}

// printNumbers prints groups for programs.
func (o *queryOptions) printNumbers(groups []query.Group) error {
	if o.style.Format.Name == print.CSV {
		rows := [][]string{o.groupHeaders()}
		for _, g := range groups {
			var row []string
			for _, v := range g.Values {
				if v == indexers.Null {
					v = ""
				}
				row = append(row, v)
			}
			row = append(row, strconv.Itoa(g.Count))
			for _, r := range g.Results {
				row = append(row, r.Value)
			}
			rows = append(rows, row)
		}
		return o.printCSV(rows)
	}
	records := make([]groupRecord, 0, len(groups))
	for _, g := range groups {
		record := groupRecord{Values: map[string]*string{}, Count: g.Count, Computed: map[string]json.RawMessage{}}
		for i, name := range o.groups.GroupBy {
			record.Values[name] = nil
			if v := g.Values[i]; v != indexers.Null {
				record.Values[name] = &v
			}
		}
		for i, r := range g.Results {
			record.Computed[o.groups.Measures[i].String()] = jsonValue(r.Value)
		}
		records = append(records, record)
	}
	return o.printJSON(records)
}

// jsonValue is a number where the text is one; null where there is none.
func jsonValue(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage("null")
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) // a string always has a form
	return quoted
}

// printCount prints the number of objects.
func (o *queryOptions) printCount(n int) error {
	switch o.style.Format.Name {
	case print.CSV:
		return o.printCSV([][]string{{"COUNT"}, {strconv.Itoa(n)}})
	case print.JSON:
		return o.printJSON(map[string]int{"count": n})
	}
	_, err := fmt.Fprintln(o.Out, n)
	return err
}

// printCSV writes rows, of which the first is the header.
func (o *queryOptions) printCSV(rows [][]string) error {
	if o.style.NoHeaders {
		rows = rows[1:]
	}
	w := csv.NewWriter(o.Out)
	return w.WriteAll(rows)
}

func (o *queryOptions) printJSON(value any) error {
	text, err := json.MarshalIndent(value, "", "    ")
	if err != nil {
		return err
	}
	_, err = o.Out.Write(append(text, '\n'))
	return err
}
