package extension

import (
	"encoding/json"

	"muntin/agent/llm"
)

// Protocol is the version that this package speaks. An extension that answers with
// another one is not used.
const Protocol = 1

// The types of frames. A request is answered by exactly one response with its id;
// updates may come before. Both sides number their own requests.
const (
	TypeHello    = "hello"    // host: the first frame
	TypeReady    = "ready"    // extension: the answer to it
	TypeRequest  = "request"  // either
	TypeResponse = "response" // either
	TypeUpdate   = "update"   // extension: a part of the answer to a request
	TypeCancel   = "cancel"   // host: nobody waits for the answer any more
	TypeEvent    = "event"    // either: wants no answer
)

// A Frame is one line. Its keys come in this order when the host writes.
type Frame struct {
	Type   string          `json:"type" jsonschema:"hello, ready, request, response, update, cancel or event"`
	ID     int64           `json:"id,omitempty" jsonschema:"of the request that the frame makes, answers or cancels; each side numbers its own"`
	Method string          `json:"method,omitempty" jsonschema:"what a request asks for, or the name of an event"`
	Params json.RawMessage `json:"params,omitempty" jsonschema:"of hello, ready, request, update and event"`
	Result json.RawMessage `json:"result,omitempty" jsonschema:"of a response that went well"`
	Error  string          `json:"error,omitempty" jsonschema:"of a response that did not: why, for people"`
}

// Hello begins a conversation with an extension.
type Hello struct {
	Protocol int            `json:"protocol"`
	Version  string         `json:"version" jsonschema:"of muntin"`
	Name     string         `json:"name" jsonschema:"of the extension, as in its manifest"`
	Dir      string         `json:"dir" jsonschema:"the working folder"`
	State    string         `json:"state" jsonschema:"a folder that the extension may keep files in"`
	Session  string         `json:"session" jsonschema:"the id of the conversation"`
	Mode     string         `json:"mode" jsonschema:"tui, print, json, rpc or acp"`
	Dialogs  bool           `json:"dialogs" jsonschema:"whether there is somebody to ask"`
	Flags    map[string]any `json:"flags" jsonschema:"the values of the manifest's flags"`
}

// Ready answers Hello.
type Ready struct {
	Protocol int    `json:"protocol"`
	Name     string `json:"name,omitempty"`
	Version  string `json:"version,omitempty"`
}

// The gates: requests of the host whose results change what happens. An empty
// result changes nothing.
const (
	GateInput      = "input"          // a prompt, before anything else is done with it
	GateStart      = "before_start"   // a run that is about to begin
	GateContext    = "context"        // what one request shows of the conversation
	GateRequest    = "request"        // one request to the model
	GateToolCall   = "tool_call"      // a call that is about to run
	GateToolResult = "tool_result"    // the result of a call that ran
	GateTurn       = "turn"           // the end of a turn
	GateCompaction = "compaction"     // room that is about to be made in the context
	GateSwitch     = "session_switch" // the conversation is about to be left
	GateUserBash   = "user_bash"      // a command that the user runs
)

// Gates gives all gates.
func Gates() []string {
	return []string{
		GateInput, GateStart, GateContext, GateRequest, GateToolCall, GateToolResult, GateTurn, GateCompaction, GateSwitch, GateUserBash,
	}
}

// Other requests of the host.
const (
	MethodTool    = "tool"     // run a tool of the extension
	MethodCommand = "command"  // run a command of the extension
	MethodModel   = "provider" // ask a model of the extension
)

// Events of the host beside those of the agent (see agent.EventType).
const (
	EventSessionStart    = "session_start"
	EventSessionShutdown = "session_shutdown"
	EventModelSelect     = "model_select"
)

// What an extension may say unasked. ask is a request, the others are events.
const (
	SayAsk    = "ask"
	SayNotify = "notify"
	SayStatus = "status"
	SaySend   = "send"
)

// Input is a prompt of the user.
type Input struct {
	Text   string      `json:"text"`
	Images []llm.Block `json:"images,omitempty"`
}

// InputResult says what becomes of it.
type InputResult struct {
	Action  string `json:"action,omitempty" jsonschema:"continue (the default), transform: Text takes its place, or handled: nothing is sent"`
	Text    string `json:"text,omitempty"`
	Message string `json:"message,omitempty" jsonschema:"with handled: what the user is shown"`
}

// Start is a run that is about to begin with a prompt.
type Start struct {
	Prompt string `json:"prompt"`
	System string `json:"system" jsonschema:"the system prompt"`
}

// StartResult changes it.
type StartResult struct {
	System *string `json:"system,omitempty" jsonschema:"takes the place of the system prompt, for this run"`
	Append string  `json:"append,omitempty" jsonschema:"is added to the user's message"`
}

// Context is the conversation as a request is about to show it.
type Context struct {
	Messages []llm.Message `json:"messages"`
}

// ContextResult replaces it for that request, when there are messages.
type ContextResult struct {
	Messages []llm.Message `json:"messages,omitempty"`
}

// Request is one request to a model.
type Request struct {
	Model     string        `json:"model" jsonschema:"the id without the provider"`
	System    string        `json:"system"`
	Messages  []llm.Message `json:"messages"`
	Tools     []Spec        `json:"tools"`
	MaxTokens int           `json:"maxTokens,omitempty"`
	Thinking  llm.Level     `json:"thinking,omitempty"`
}

// A Spec is what a model is told of a tool.
type Spec struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty" jsonschema:"a JSON Schema"`
}

// RequestResult changes what it names.
type RequestResult struct {
	System    *string       `json:"system,omitempty"`
	Messages  []llm.Message `json:"messages,omitempty"`
	Tools     []string      `json:"tools,omitempty" jsonschema:"the names of the tools that stay"`
	MaxTokens int           `json:"maxTokens,omitempty"`
	Thinking  llm.Level     `json:"thinking,omitempty"`
}

// ToolCall is a call of the model: one that is about to run, or ran.
type ToolCall struct {
	ID   string          `json:"toolCallId"`
	Name string          `json:"toolName"`
	Args json.RawMessage `json:"args"`
}

// ToolCallResult is the decision on a call. Changed arguments are not validated again.
type ToolCallResult struct {
	Block     bool            `json:"block,omitempty"`
	Reason    string          `json:"reason,omitempty" jsonschema:"with block: what the model is told"`
	Terminate bool            `json:"terminate,omitempty" jsonschema:"with block: end the run after this batch"`
	Args      json.RawMessage `json:"args,omitempty" jsonschema:"take the place of the call's"`
}

// ToolResult is a call that ran, with what came of it.
type ToolResult struct {
	ToolCall
	Content []llm.Block     `json:"content"`
	Details json.RawMessage `json:"details,omitempty"`
	IsError bool            `json:"isError"`
}

// ToolResultResult changes what it names.
type ToolResultResult struct {
	Content []llm.Block     `json:"content,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
	IsError *bool           `json:"isError,omitempty"`
}

// Turn is a turn that is about to end.
type Turn struct {
	Message     llm.Message   `json:"message"`
	ToolResults []llm.Message `json:"toolResults,omitempty"`
}

// TurnResult says how the run goes on.
type TurnResult struct {
	Action string `json:"action,omitempty" jsonschema:"continue: at least one more request, or end"`
}

// Compaction is room that is about to be made.
type Compaction struct {
	Reason       string        `json:"reason" jsonschema:"manual, threshold or overflow"`
	Instructions string        `json:"instructions,omitempty"`
	Previous     string        `json:"previous,omitempty" jsonschema:"the summary before this one"`
	Messages     []llm.Message `json:"messages" jsonschema:"what the summary is to stand for"`
}

// CompactionResult changes it. A summary takes the place of the model's.
type CompactionResult struct {
	Cancel       bool   `json:"cancel,omitempty"`
	Reason       string `json:"reason,omitempty" jsonschema:"with cancel: why, for people"`
	Instructions string `json:"instructions,omitempty"`
	Summary      string `json:"summary,omitempty"`
}

// Switch is a conversation that is about to be left.
type Switch struct {
	Reason string `json:"reason" jsonschema:"new, resume, fork or navigate"`
	Target string `json:"target,omitempty" jsonschema:"a file, or an entry of this conversation"`
}

// SwitchResult may keep it.
type SwitchResult struct {
	Cancel bool   `json:"cancel,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// UserBash is a command that the user runs beside the conversation.
type UserBash struct {
	Command string `json:"command"`
	Exclude bool   `json:"exclude,omitempty" jsonschema:"it is kept from the model"`
}

// UserBashResult is the decision on it.
type UserBashResult struct {
	Block  bool   `json:"block,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// ToolOutput is what a tool of an extension gives, also as an update.
type ToolOutput struct {
	Text      string          `json:"text,omitempty" jsonschema:"short for content of one text"`
	Content   []llm.Block     `json:"content,omitempty"`
	Details   json.RawMessage `json:"details,omitempty" jsonschema:"for people and the session, not for the model"`
	IsError   bool            `json:"isError,omitempty"`
	Terminate bool            `json:"terminate,omitempty"`
}

// CommandCall is a command that the user called, as in "/name args".
type CommandCall struct {
	Name string `json:"name"`
	Args string `json:"args,omitempty"`
}

// CommandResult is what comes of it.
type CommandResult struct {
	Text   string `json:"text,omitempty" jsonschema:"is shown to the user"`
	Prompt string `json:"prompt,omitempty" jsonschema:"is sent to the model"`
}

// ModelRequest asks a model of an extension. Updates are llm events of the types
// text_delta, thinking_delta, toolcall_start, toolcall_delta and toolcall_end.
type ModelRequest struct {
	Provider string  `json:"provider"`
	Request  Request `json:"request"`
}

// ModelResult ends a response.
type ModelResult struct {
	Stop  llm.StopReason `json:"stopReason,omitempty" jsonschema:"stop, length or toolUse"`
	Usage *llm.Usage     `json:"usage,omitempty"`
	Class llm.Class      `json:"class,omitempty" jsonschema:"when it failed: retryable, overflow, auth, quota, invalid or other"`
	Error string         `json:"error,omitempty" jsonschema:"when it failed: why"`
}

// The kinds of questions.
const (
	AskSelect  = "select"
	AskConfirm = "confirm"
	AskInput   = "input"
)

// A Question is a dialog that an extension wants.
type Question struct {
	Kind    string   `json:"kind" jsonschema:"select, confirm or input"`
	Title   string   `json:"title"`
	Text    string   `json:"text,omitempty"`
	Options []string `json:"options,omitempty" jsonschema:"of select"`
	Default string   `json:"default,omitempty" jsonschema:"of input"`
	Timeout int64    `json:"timeoutMs,omitempty" jsonschema:"milliseconds; 0: none"`

	Extension string `json:"-"`
}

// An Answer is what came of it. Without Answered, nobody was there or the person
// did not want to.
type Answer struct {
	Answered  bool   `json:"answered"`
	Confirmed bool   `json:"confirmed,omitempty" jsonschema:"of confirm"`
	Value     string `json:"value,omitempty" jsonschema:"of select and input"`
}

// LevelReply is the level of notices of the host itself: what came of something that
// the user asked for. A front end that prints the outcome of a prompt has it there.
const LevelReply = "reply"

// A Notice is a line for people.
type Notice struct {
	Level string `json:"level,omitempty" jsonschema:"info, warning or error"`
	Text  string `json:"text"`

	Extension string `json:"-"`
	garbage   bool   // it tells of output that is no frame
}

// A Status is a short text that stays on the screen; "" takes it away.
type Status struct {
	Text string `json:"text"`

	Extension string `json:"-"`
}

// A Sending is a message for the model.
type Sending struct {
	Text string `json:"text"`
	As   string `json:"as,omitempty" jsonschema:"followup (the default) or steer"`

	Extension string `json:"-"`
}
