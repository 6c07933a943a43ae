"""Manages an agent's own context window: pure functions, and two modules that access the disk.

    flush       should durable memory be written before the conversation is compacted, and the prompt that asks for it
    no_reply    NO_REPLY, recognised in a stream
    daily_note  append to today's note (touches the disk)
    pruning     old tool results, shortened for one request
    bootstrap   which workspace files go into the system prompt, and how much of each
    workspace   those files, read from the disk
    report      what fills the window

Compaction itself is the agent's: only it knows its model.
"""
