from memd_client.context.conversation import Message, quarters


def test_a_message_is_as_large_as_its_text_and_images() -> None:
    """A letter counts one, a Chinese character four, an image 8,000."""
    assert quarters(Message(role="user", text="abcd")) == 4
    assert quarters(Message(role="user", text="数据")) == 8
    assert quarters(Message(role="tool", text="x", images=2)) == 16_001
