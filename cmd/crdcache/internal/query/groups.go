package query

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

func (o *verb) parseGroups() error {
	for _, text := range o.groupBy {
		for _, name := range jsonpath.SplitList(text) {
			if name == "" {
				return session.Usagef("--group-by needs the name of an index, or a path")
			}
			if err := validateOperand("group-by", name); err != nil {
				return err
			}
			o.aggregation.GroupBy = append(o.aggregation.GroupBy, name)
		}
	}
	for _, text := range o.compute {
		measure, err := query.ParseMeasure(text)
		if err != nil {
			return session.Usagef("--compute: %v", err)
		}
		if err := validateOperand("compute", measure.Operand); err != nil {
			return err
		}
		o.aggregation.Measures = append(o.aggregation.Measures, measure)
	}
	return nil
}

// validateOperand validates a path in the value of a flag.
func validateOperand(flag, name string) error {
	if !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "$") {
		return nil
	}
	var pathErr *jsonpath.Error
	if _, err := jsonpath.Compile(name); errors.As(err, &pathErr) {
		return session.UsageLines(fmt.Sprintf("--%s: %s\n%s", flag, pathErr.Text(), pathErr.Caret()))
	} else if err != nil {
		return session.Usagef("--%s: %v", flag, err)
	}
	return nil
}

func (o *verb) hasGroups() bool { return len(o.aggregation.GroupBy)+len(o.aggregation.Measures) > 0 }

// addGroups adds the groups of a cluster, the largest first.
func (o *verb) addGroups(groups []query.Group) {
	slices.SortStableFunc(groups, func(a, b query.Group) int { return cmp.Compare(b.Count, a.Count) })
	o.warnOfSkipped(groups)
	o.output.hasGroups = true
	if o.Cluster != "" {
		groups = query.PrependCluster(o.Cluster, groups)
	}
	o.output.groups = append(o.output.groups, groups...)
}

func (o *verb) isMultiCluster() bool { return o.readers[0].Cluster != "" }

// printGroups prints the groups or counts. Objects without a value form the group <none>.
func (o *verb) printGroups() error {
	groups, isNumber := o.output.groups, o.count && !o.isMultiCluster()
	switch {
	case o.style.Format.Name == print.CSV:
		return csv.NewWriter(o.output.Out).WriteAll(o.groupRows(groups, ""))
	case o.style.Format.Name == print.JSON && isNumber:
		return o.printJSON(o.groupRecords(groups)[0])
	case o.style.Format.Name == print.JSON:
		return o.printJSON(o.groupRecords(groups))
	case isNumber:
		_, err := fmt.Fprintln(o.output.Out, groups[0].Count)
		return err
	}
	w := printers.GetNewTabWriter(o.output.Out)
	for _, row := range o.groupRows(groups, "<none>") {
		print.WriteRow(w, "", row...)
	}
	return w.Flush()
}

// groupRows returns the header, unless it is omitted, and a row for each group.
func (o *verb) groupRows(groups []query.Group, missing string) (rows [][]string) {
	if !o.style.NoHeaders {
		rows = append(rows, o.groupHeaders())
	}
	for _, g := range groups {
		var row []string
		for _, v := range g.Values {
			if v == indexers.Null {
				v = missing
			}
			row = append(row, v)
		}
		row = append(row, strconv.Itoa(g.Count))
		for _, r := range g.Results {
			row = append(row, cmp.Or(r.Value, missing))
		}
		rows = append(rows, row)
	}
	return rows
}

// warnOfSkipped warns about values that are not numbers.
func (o *verb) warnOfSkipped(groups []query.Group) {
	for i, m := range o.aggregation.Measures {
		skippedCount := 0
		for _, g := range groups {
			skippedCount += g.Results[i].Skipped
		}
		if skippedCount > 0 {
			o.Warnf("--compute %s: values that are not numbers were skipped: %d", m, skippedCount)
		}
	}
}

func (o *verb) groupHeaders() (headers []string) {
	if o.isMultiCluster() {
		headers = append(headers, "CLUSTER")
	}
	headers = append(append(headers, o.aggregation.GroupBy...), "COUNT")
	headers = append(headers, naming.Texts(o.aggregation.Measures, query.Measure.String)...)
	return naming.Texts(headers,
		func(header string) string { return strings.ToUpper(print.Printable(header)) })
}

// groupRecord is a group in JSON. Missing values are null. A count has no Values.
type groupRecord struct {
	Cluster  string                     `json:"cluster,omitempty"`
	Values   map[string]*string         `json:"values,omitzero"`
	Count    int                        `json:"count"`
	Computed map[string]json.RawMessage `json:"computed,omitempty"`
}

func (o *verb) groupRecords(groups []query.Group) []groupRecord {
	records := make([]groupRecord, 0, len(groups))
	for _, g := range groups {
		record := groupRecord{Count: g.Count, Computed: map[string]json.RawMessage{}}
		if !o.count {
			record.Values = map[string]*string{}
		}
		if o.isMultiCluster() {
			record.Cluster, g.Values = g.Values[0], g.Values[1:]
		}
		for i, name := range o.aggregation.GroupBy {
			record.Values[name] = nil
			if v := g.Values[i]; v != indexers.Null {
				record.Values[name] = &v
			}
		}
		for i, r := range g.Results {
			record.Computed[o.aggregation.Measures[i].String()] = jsonValue(r.Value)
		}
		records = append(records, record)
	}
	return records
}

// jsonValue returns a number, string or null.
func jsonValue(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage("null")
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) // a string always has a JSON form
	return quoted
}

func (o *verb) printJSON(value any) error {
	encoder := json.NewEncoder(o.output.Out)
	encoder.SetIndent("", "    ")
	return encoder.Encode(value)
}
