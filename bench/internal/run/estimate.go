package run

import (
	"time"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// Estimate is about how long the run takes.
func (p Plan) Estimate() time.Duration {
	seconds := 0.0
	type contents struct{ size, gates string }
	most := map[contents]int{}
	for _, s := range p {
		seconds += s.estimate()
		if !s.sandboxed() {
			continue
		}
		of := contents{s.Size, s.Gates}
		most[of] = max(most[of], s.inSandbox())
	}
	for of, objects := range most {
		each := fillPer1000
		switch of.size {
		case experiment.Large:
			each *= largeFactor
		case experiment.Many:
			each = manyPer1000
		}
		seconds += sandboxSeconds + each*float64(objects)/1000
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second)
}

// perObject is about how many microseconds a subject takes for an object of 2 KB until it is synced, on two
// cores that it shares with the server. It only serves the estimate.
var perObject = map[string]float64{
	subject.Stream:            100,
	subject.ClientGo:          210,
	subject.ClientGoTrimmed:   220,
	subject.ControllerRuntime: 210,
	subject.ClientGoMetadata:  50,
}

// Otherwise, for the modes of crdcache.
const perObjectOurs = 110

// perObjectSynthetic is the same for crdcache where the server takes next to nothing.
const perObjectSynthetic = 45

// perPrinted is the same for printing an object, by experiment and command.
var perPrinted = map[string]map[string]float64{
	experiment.DumpJSON: {experiment.Kubectl: 550, experiment.Ours: 200},
	experiment.DumpYAML: {experiment.Kubectl: 1100, experiment.Ours: 550},
}

// perManaged is the same for reconciling an object, by manager.
var perManaged = map[string]float64{experiment.StockManager: 300, experiment.OursManager: 130, experiment.CompressedManager: 150}

// What else takes time, in seconds.
const (
	childSeconds     = 1.0
	sandboxSeconds   = 8
	fillPer1000      = 0.6
	manyPer1000      = 8   // with their types
	largeFactor      = 3   // of a large object against a small one
	burstRate        = 800 // how many updates the server takes in a second
	typesSettle      = 3
	relistSeconds    = 3 // for which a client waits before it lists again, and more
	syntheticPer1000 = 0.02
	perType          = 4 // of a thousand types
)

// restartSeconds is what the second process takes, and the changes before it, by subject.
var restartSeconds = map[string]float64{experiment.Unchanged: childSeconds + 2, experiment.Changed: childSeconds + 4}

// operations is how many small operations with a budget an experiment has.
var operations = map[string]int{experiment.Reads: 4, experiment.Decode: 3, experiment.Paths: 5, experiment.Queries: 4, experiment.Scale: 4}

// Estimate is about how long the step takes, without filling the sandbox.
func (s Step) Estimate() time.Duration {
	return time.Duration(s.estimate() * float64(time.Second)).Round(time.Second)
}

func (s Step) estimate() float64 {
	one := 0.0
	if s.Experiment == experiment.Scale {
		one = syntheticPer1000 * float64(s.Objects) / 1000
	}
	if s.Experiment == experiment.Types {
		one = float64(len(s.Subjects)) * (childSeconds + typesSettle + s.Idle.Seconds() + perType*float64(s.Objects)/1000)
		return one * float64(s.Rounds)
	}
	for _, name := range s.Subjects {
		if s.Experiment == experiment.Scale {
			one += relistSeconds + 2*s.estimateObject(name)*float64(s.Objects)/1e6 // filled and listed again, and what follows
		}
		one += childSeconds + restartSeconds[name] + float64(operations[s.Experiment])*s.Budget.Seconds()
		switch {
		case s.Rate > 0:
			one += float64(s.Events) / s.Rate
		case s.Events > 0:
			one += float64(s.Events) / burstRate
		}
		one += s.estimateObject(name) * float64(s.Objects) / 1e6
	}
	return one * float64(s.Rounds)
}

// estimateObject is about how many microseconds a subject takes for each object.
func (s Step) estimateObject(name string) float64 {
	switch s.Experiment {
	case experiment.Decode, experiment.Paths:
		return 0 // they fetch a few
	case experiment.Queries:
		return 60 // to make objects and keep them
	case experiment.ManageUnstructured, experiment.ManageTyped, experiment.ManageMetadata, experiment.ManageTypes:
		return perManaged[name]
	case experiment.DumpJSON, experiment.DumpYAML:
		return perPrinted[s.Experiment][name]
	}
	if s.Experiment == experiment.Scale && name != subject.ClientGo {
		return perObjectSynthetic
	}
	each, ok := perObject[name]
	if !ok {
		each = perObjectOurs
	}
	if _, ok := s.family(); ok || s.Size == experiment.Large {
		each *= largeFactor
	}
	return each
}
