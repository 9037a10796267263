package shard

import "k8s.io/klog/v2"

// debugLevel is where the log lines of electors go. They are many, and say errors where two replicas want the
// same shard.
const debugLevel = 4

// quiet returns a logger that says all that it is told at the debug level only. What went wrong for good is
// said by others.
func quiet(logger klog.Logger) klog.Logger {
	if logger.GetSink() == nil { // it says nothing anyway
		return logger
	}
	return klog.New(quietSink{logger.GetSink()}).V(debugLevel)
}

// quietSink has no errors.
type quietSink struct{ klog.LogSink }

// Init implements klog.LogSink. The sink inside is in use already, perhaps by others.
func (quietSink) Init(klog.RuntimeInfo) {}

// Error implements klog.LogSink.
func (s quietSink) Error(err error, message string, keysAndValues ...any) {
	if s.Enabled(debugLevel) {
		s.Info(debugLevel, message, append(keysAndValues, "err", err)...)
	}
}

// WithValues implements klog.LogSink.
func (s quietSink) WithValues(keysAndValues ...any) klog.LogSink {
	return quietSink{s.LogSink.WithValues(keysAndValues...)}
}

// WithName implements klog.LogSink.
func (s quietSink) WithName(name string) klog.LogSink { return quietSink{s.LogSink.WithName(name)} }
